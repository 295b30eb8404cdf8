"""The interface of a collector, and the kernel's texts understood exactly or refused with what they held.

Imports `base`."""
