"""A bundle for a support request: facts of an appliance and its host, without secrets, records or
keys. `archive.py` assembles its parts; every byte passes `secrets.py`.
"""
