"""Everything that is computed from results, once; pages, figures and commands only draw it."""
