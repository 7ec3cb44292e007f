"""The commands, in folders by noun: a module for each verb, or for a few that are one idea.

They read flags, ask the model and show what it says.
"""
