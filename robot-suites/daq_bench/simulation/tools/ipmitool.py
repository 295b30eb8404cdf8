"""Tells what ipmitool prints of the modelled BMC: sensors and DCMI's power."""

from __future__ import annotations

from datetime import UTC, datetime

SENSORS = """\
CPU1 Temp,{cpu},degrees C,ok,3.1,Processor,Temperature,0.000,0.000,,93.000,98.000,98.000,,0.000,0.000,0.000,0.000
System Temp,31,degrees C,ok,7.11,System Board,Temperature,,,,80.000,85.000,90.000,-5.000,-7.000,-9.000,0.000,0.000
FAN1,{rpm},RPM,{state},29.1,Fan Device,Fan,,,,25300.000,25400.000,25500.000,700.000,500.000,300.000,0.000,0.000
12V,12.192,Volts,ok,7.17,System Board,Voltage,,,,12.945,13.259,13.574,10.492,10.173,9.857,0.000,0.000
"""
POWER = """
    Instantaneous power reading:                   {watts} Watts
    Minimum during sampling period:                {watts} Watts
    Maximum during sampling period:                {watts} Watts
    Average power reading over sample period:      {watts} Watts
    IPMI timestamp:                           {time} UTC    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated

"""


def sensors(rpm: int, cpu_degc: int) -> str:
    return SENSORS.format(rpm=rpm, state="ok" if rpm > 700 else "Lower Non-Recoverable", cpu=cpu_degc)


def power(watts: float, at_s: float) -> str:
    time = datetime.fromtimestamp(at_s, UTC).strftime("%m/%d/%y %H:%M:%S")
    return POWER.format(watts=round(watts), time=time)
