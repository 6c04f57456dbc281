"""What a project that builds on tenure writes to have the kit."""

pytest_plugins = ["tenure.adapters.testing.plugin"]
