"""`python -m appliance.cli`: the `penstock` command of this very interpreter."""

from appliance.cli import main

main()
