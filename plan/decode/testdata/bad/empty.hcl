# ERROR: Plan requires nothing
