-- auditing: the row of an action, and with it the answers, for whoever repeats it.
-- touches  base:audit (hash: id to msgpack at, answers, row)  base:audited (zset by when)

local function find_answers(id)
  local text = redis.call('HGET', base .. ':audit', id)
  return text and cmsgpack.unpack(text)[2]
end

local function tell_audit(id, answers, row)
  redis.call('HSET', base .. ':audit', id, cmsgpack.pack({ now, answers, row }))
  redis.call('ZADD', base .. ':audited', now, id)
end
