"""Operations that SQL stores share, over statements that each store names alike and writes its own way."""
