/** Readings of both PostgreSQL databases, and of what is recorded in them. */
import type { Connection } from '../../../database/connection.ts'
import { Database, type Reader } from '../../../database/database.ts'
import { anyOperatorExists, countOwners } from '../../../database/identity/operators.ts'
import { findPepperCheck, hasPepperChecks } from '../../../database/identity/pepper-checks.ts'
import { inspectSchema, type SchemaState } from '../../../database/migrate.ts'
import {
  inspectPostgresDocuments,
  type PostgresInspection,
} from '../../../documents/postgres/inspection.ts'
import { documentDatabase } from '../../../documents/postgres/schema.ts'
import { type ConfiguredPepper, configuredPeppers } from '../../../identity/pepper-checks.ts'
import type { ServerSettings } from '../../../settings/settings.ts'
import { digestEquals } from '../../../system/digests.ts'
import type { System } from '../../../system/system.ts'
import type { OwnersReading, PeppersReading, Reading, Readings } from '../readings.ts'
import { skip } from '../readings.ts'
import { type DatabaseReadings, readDatabase, wantedConnections } from './postgres.ts'
import { mapped } from './reading-of.ts'

interface IdentityContent {
  readonly schema: SchemaState
  readonly identityPepper: PeppersReading
  readonly subjectPeppers: PeppersReading
  readonly owners: OwnersReading
}

const NO_OWNERS: OwnersReading = { owners: 0, isClaimed: false }

type IdentityReadings = Pick<
  Readings,
  'identityVersion' | 'identity' | 'identitySchema' | 'identityPepper' | 'subjectPeppers' | 'owners'
>

export async function readIdentity(
  settings: ServerSettings,
  system: System,
): Promise<IdentityReadings> {
  const { identityDatabase: address, identityPepper, oidc, workloads } = settings
  const providers = oidc === null ? workloads : [oidc, ...workloads]
  const peppers = configuredPeppers(identityPepper, providers)
  const found = await readDatabase({
    database: new Database({
      url: address.url,
      connectionsMax: 2,
      applicationName: 'svc-doctor',
    }),
    address,
    connectionsWanted: wantedConnections('identity', 1),
    system,
    read: (connection) => readContent(connection, peppers),
  })
  const { version, state, more } = found
  const current = mapped(
    more,
    (content): Reading<IdentityContent> =>
      content.schema.version === content.schema.known
        ? { value: content }
        : skip(otherSchema(content.schema)),
  )
  return {
    identityVersion: version,
    identity: state,
    identitySchema: mapped(more, ({ schema }) => ({ value: schema })),
    identityPepper: mapped(current, (content) => ({ value: content.identityPepper })),
    subjectPeppers: mapped(current, (content) => ({ value: content.subjectPeppers })),
    owners: mapped(current, ({ owners }) => ({ value: owners })),
  }
}

function otherSchema({ version }: SchemaState): string {
  return version === 0 ? 'the database is empty' : 'the schema has another version'
}

async function readContent(
  connection: Connection,
  peppers: readonly ConfiguredPepper[],
): Promise<IdentityContent> {
  const schema = await inspectSchema(connection)
  const none = { changed: [], checked: 0 }
  if (schema.version !== schema.known) {
    return { schema, identityPepper: none, subjectPeppers: none, owners: NO_OWNERS }
  }
  const reader: Reader = {
    rows: async (sql, parameters) => (await connection.query(sql, parameters)).rows,
  }
  const comparing = async (kind: ConfiguredPepper['kind']): Promise<PeppersReading> => {
    if (!(await hasPepperChecks(reader))) return none
    const changed: string[] = []
    let checked = 0
    for (const { pepper, digest } of peppers.filter((each) => each.kind === kind)) {
      const recorded = await findPepperCheck(reader, pepper)
      if (recorded === null) continue
      checked += 1
      if (!digestEquals(recorded, digest)) changed.push(pepper)
    }
    return { changed, checked }
  }
  return {
    schema,
    identityPepper: await comparing('identity'),
    subjectPeppers: await comparing('oidc-subject'),
    owners: {
      owners: await countOwners(reader),
      isClaimed: await anyOperatorExists(reader),
    },
  }
}

type DocumentReadings = Pick<
  Readings,
  'documentVersion' | 'documentDatabase' | 'documentSchema' | 'documentBinding'
> & {
  /** The schema to read documents with; skipped without a binding. */
  readonly stored: Reading<NonNullable<PostgresInspection['documents']>>
}

export interface Binding {
  readonly environmentId: string
  /** The ID that the root records; null before the first start. */
  readonly databaseId: string | null
}

/** `binding` is null if the root cannot be read. */
export async function readDocumentDatabase(
  settings: ServerSettings,
  binding: Binding | null,
  system: System,
): Promise<DocumentReadings> {
  const address = settings.product?.database ?? null
  if (address === null) {
    const none = skip('no database for documents is configured')
    return {
      documentVersion: none,
      documentDatabase: none,
      documentSchema: none,
      documentBinding: none,
      stored: none,
    }
  }
  const onIdleLoss = (): void => undefined
  const { version, state, more }: DatabaseReadings<PostgresInspection> = await readDatabase({
    database: documentDatabase({
      url: address.url,
      connectionsMax: 2,
      onIdleLoss,
      applicationName: 'svc-doctor',
    }),
    address,
    connectionsWanted: wantedConnections('documents', settings.product?.applicationProcesses ?? 1),
    system,
    read: inspectPostgresDocuments,
  })
  return {
    documentVersion: version,
    documentDatabase: state,
    documentSchema: mapped(more, ({ schema }) => ({ value: schema })),
    documentBinding: mapped(more, (found) => bindingOf(found, binding)),
    stored: mapped(more, ({ documents }) =>
      documents === null
        ? skip('the database holds no documents of this version')
        : { value: documents },
    ),
  }
}

function bindingOf(
  { schema, binding: found }: PostgresInspection,
  binding: Binding | null,
): Reading<null> {
  if (schema.version !== schema.known) return skip(otherSchema(schema))
  if (binding === null) return skip('the root cannot be read')
  const { environmentId, databaseId } = binding
  if (found === null) {
    return databaseId === null
      ? { value: null }
      : { failed: 'the database holds no documents, but this root has some' }
  }
  if (found.environmentId !== environmentId) {
    return { failed: 'the database belongs to another Environment' }
  }
  return databaseId === null || databaseId === found.databaseId
    ? { value: null }
    : { failed: 'the database is not the one that this root was opened with' }
}
