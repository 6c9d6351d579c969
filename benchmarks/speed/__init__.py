"""How fast Piste is beside its peers and beside the bare model, and at what faithfulness."""
