"""The report's figures: each module turns part of a bundle into one figure with its caption."""
