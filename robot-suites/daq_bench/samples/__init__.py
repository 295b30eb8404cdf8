"""One of each document, made of simulated servers, for those who want to see what they will get.

Promise: the runs behind them live in a folder of this process and die with it; each page says that it is simulated."""
