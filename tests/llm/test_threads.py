"""Waiting for threads that wait for a chat model."""

import subprocess
import sys

WAITING = """
import os, signal, threading, time
from concurrent.futures import ThreadPoolExecutor
from fastscore.llm import client

signal.signal(signal.SIGINT, signal.default_int_handler)
heard, answered = threading.Event(), threading.Event()

def interrupt():
    waits.wait()
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
    if not heard.wait(20):
        print("not heard")
    answered.set()

waits, wait = threading.Event(), client.wait

def tell_and_wait(*args, **options):
    waits.set()
    return wait(*args, **options)

client.wait = tell_and_wait
other = threading.Thread(target=interrupt)
other.start()
# the system gives a signal to any thread: to another one than that which waits
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
with ThreadPoolExecutor(1) as pool:
    futures = {pool.submit(answered.wait): 0}
    try:
        list(client.as_done(futures))
    except KeyboardInterrupt:
        heard.set()
        print("interrupted")
other.join()
"""


def test_a_signal_that_another_thread_gets_is_heard_while_nothing_is_answered():
    done = subprocess.run(
        [sys.executable, "-c", WAITING], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "interrupted\n", done.stderr
