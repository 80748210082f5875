-- The PostgreSQL side of docs/coming_from/database.md.
-- [lock]
BEGIN;
SELECT balance FROM account WHERE id = 1 FOR UPDATE;
UPDATE account SET balance = balance + 1 WHERE id = 1;
COMMIT;
-- [/lock]
-- [advisory]
SELECT pg_advisory_lock(4711);
UPDATE account SET balance = balance + 1 WHERE id = 1;
SELECT pg_advisory_unlock(4711);
-- [/advisory]
