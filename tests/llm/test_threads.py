"""Waiting for threads that wait for a chat model."""

import subprocess
import sys

WAITING = """
import os, signal, threading
from concurrent.futures import ThreadPoolExecutor
from fastscore.llm.threads import as_done

signal.signal(signal.SIGINT, signal.default_int_handler)
heard, answered = threading.Event(), threading.Event()

def interrupt():
    waits.wait()
    os.kill(os.getpid(), signal.SIGINT)
    if not heard.wait(20):
        print("not heard")
    answered.set()

waits = threading.Event()
other = threading.Thread(target=interrupt)
other.start()
# the system gives a signal to any thread: to another one than that which waits
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
with ThreadPoolExecutor(1) as pool:
    futures = {pool.submit(lambda: waits.set() or answered.wait()): 0}
    try:
        list(as_done(futures))
    except KeyboardInterrupt:
        heard.set()
        print("interrupted")
other.join()
"""


def test_a_signal_that_another_thread_gets_is_heard_while_nothing_is_answered() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WAITING], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "interrupted\n", done.stderr
