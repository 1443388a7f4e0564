-- name: find_store_id
-- Which store this is.
select id
from drumline_store
