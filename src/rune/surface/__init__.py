"""What every surface shares: commands as data, views, results, doctor."""
