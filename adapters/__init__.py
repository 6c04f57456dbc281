"""Everything that touches the world: TLC, the terminal, and later files, sockets, SQLite and Telegram."""
