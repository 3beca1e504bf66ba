"""Studies: declared sets of runs that share phases."""
