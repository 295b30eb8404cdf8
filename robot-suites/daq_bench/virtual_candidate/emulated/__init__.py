"""Promise: QEMU runs the machine that an instance describes, and does what QMP and the faults ask. Imports instances, images and files."""
