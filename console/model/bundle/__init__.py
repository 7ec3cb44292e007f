"""What somebody sends who asks for help: facts of an appliance and its host, with no secret, record
or key in it. `archive.py` puts it together out of parts; `secrets.py` is what every byte passes."""
