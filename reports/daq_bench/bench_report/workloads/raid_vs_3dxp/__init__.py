"""NAND arrays beside 3D XPoint (DUNE)."""
