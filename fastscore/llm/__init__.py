"""Asking chat models: a client whose answers are kept by request, a judge, annotations.

With the simulation the only part that may use the network, and only where a model is named. Nothing
that scores imports it.
"""
