"""Backups of an appliance and what is made of them: docs/decisions/0063."""
