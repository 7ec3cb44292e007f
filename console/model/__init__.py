"""Facts of a broker, a data folder or a jobs folder, as plain typed values.

It prints nothing and knows no terminal: commands and screens show what it returns. Every ask has a
time limit; whatever goes wrong is a Failure (asking/failure.py).
"""
