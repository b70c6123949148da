"""Shared parts of all experiments: records, measurements, statistics, tables, figures, pages."""
