-- keys: who holds a unique key.
-- touches  base:keys (hash: 'task\nkey' to id, letter of the window, and until when, if that ends by itself)
--   base:until (zset of those that end by themselves)

local function find_holder(place)
  local held = redis.call('HGET', base .. ':keys', place)
  if not held then return nil end
  local till = tonumber(string.sub(held, 18))
  if till and till <= now then return nil end
  return string.sub(held, 1, 16)
end

local function hold_key(id, place, window, till)
  redis.call('HSET', base .. ':keys', place, id .. window .. (till and string.format('%.0f', till) or ''))
  if till then
    redis.call('ZADD', base .. ':until', till, place)
  else
    redis.call('ZREM', base .. ':until', place)
  end
end

-- Free the key, if the job holds it and under one of these windows.
local function free_key(id, place, windows)
  local held = redis.call('HGET', base .. ':keys', place)
  if held and string.sub(held, 1, 16) == id and string.find(windows, string.sub(held, 17, 17), 1, true) then
    redis.call('HDEL', base .. ':keys', place)
    redis.call('ZREM', base .. ':until', place)
  end
end
