"""How fast the appliance is, measured beside the machine's own limits and beside other brokers."""
