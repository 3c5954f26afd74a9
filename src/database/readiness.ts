/** Checks that the identity database is writable and has the schema of this program. */
import { Fault } from '../errors/fault.ts'
import type { Reader } from './database.ts'
import { SCHEMA_VERSION } from './migrate.ts'

/** Throws PLATFORM_UNAVAILABLE where the database is not ready. Costs one statement. */
export async function checkReadiness(reader: Reader): Promise<void> {
  const rows = await reader.rows(
    `select schema_version, pg_is_in_recovery() as standby from service_platform_meta`,
    [],
  )
  if (rows[0]?.schema_version !== SCHEMA_VERSION || rows[0].standby !== false) {
    throw new Fault('PLATFORM_UNAVAILABLE', {
      detail: 'the schema has another version, or the database is a standby',
    })
  }
}
