/** Whether the identity database can be written and still has the schema of this program. */
import { Fault } from '../errors/fault.ts'
import type { Reader } from './database.ts'
import { SCHEMA_VERSION } from './migrate.ts'

/** One statement. Throws a Fault where the database is not ready. */
export async function checkReadiness(reader: Reader): Promise<void> {
  const rows = await reader.rows(
    `select schema_version, pg_is_in_recovery() as standby from service_platform_meta`,
    [],
  )
  if (rows[0]?.schema_version !== SCHEMA_VERSION || rows[0].standby !== false) {
    throw new Fault('PLATFORM_UNAVAILABLE', { detail: 'another schema version, or a standby' })
  }
}
