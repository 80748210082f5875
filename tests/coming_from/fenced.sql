-- What docs/coming_from/database.md runs under zklock. The variable token is zklock's.
-- [update]
UPDATE account SET balance = balance + 1, fence = :token
WHERE id = 1 AND fence <= :token;
-- [/update]
