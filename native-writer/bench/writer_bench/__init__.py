"""Measures daqwriter side by side with fio, with copying and with the original applications: is it at the hardware's limit?"""
