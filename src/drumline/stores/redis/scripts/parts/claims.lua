-- claims: live claims as their claimers get them.
-- touches  base:state base:body base:running

-- Of each running job among the ids: id, fence, attempt, releases, due, replica, claimed, is cancelling, lease end,
--   body.
local function show_claims(ids)
  local rows = {}
  local states, bodies = read_many('HMGET', base .. ':state', ids), read_many('HMGET', base .. ':body', ids)
  for n, id in ipairs(ids) do
    local fields = states[n] and read_state(states[n])
    if fields and fields[1] == 'x' then
      local till = tonumber(redis.call('ZSCORE', base .. ':running', id))
      rows[#rows + 1] = {
        id, fields[2], fields[3], fields[4], fields[5], fields[6], fields[7], fields[8], till, bodies[n],
      }
    end
  end
  return rows
end
