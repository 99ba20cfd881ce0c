"""Which deployment meets the SLO at the least cost, why the others lost, how sure that is."""
