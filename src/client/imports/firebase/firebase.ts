/**
 * Reads the exports of Firebase that stand in one directory: Cloud Firestore as a managed export or
 * as JSON, a Realtime Database, users of Authentication, and the files of Storage in `storage`.
 */
import { explanation } from '../../explanations.ts'
import { exportInvalid } from '../archives/export-fault.ts'
import type { ExportFiles } from '../archives/export-files.ts'
import { Conversions } from '../documents/conversions.ts'
import { importedId } from '../documents/document-ids.ts'
import { tableName } from '../documents/names.ts'
import type { SourceFile } from '../documents/source-values.ts'
import type { Progress, Source, SourceCollection } from '../source.ts'
import { USERS, usersCollection } from './authentication.ts'
import { type FirestoreExport, firestoreCollections } from './firestore.ts'
import { FIRESTORE, openJsonExport } from './json-exports.ts'
import { hasManagedExport, isManagedName, openManagedExport } from './managed-exports.ts'
import { openRealtime, type RealtimeExport, realtimeCollections, realtimeFile } from './realtime.ts'
import type { TablePath } from './table-paths.ts'

const STORAGE = 'storage/'
const BINARY = 'application/octet-stream'

/** Opens an export, with these tables of a Realtime Database. Throws CLIENT_EXPORT_INVALID. */
export async function openFirebase(
  files: ExportFiles,
  progress: Progress,
  tables: readonly TablePath[] = [],
): Promise<Source> {
  const parts = partsOf(files, tables)
  let firestore: FirestoreExport | null = null
  let realtime: RealtimeExport | null = null
  const close = (): void => {
    firestore?.spool.remove()
    realtime?.spool.remove()
  }
  try {
    if (parts.managed !== null) firestore = await openManagedExport(files, parts.managed, progress)
    else if (parts.hasJson) firestore = await openJsonExport(files, progress)
    if (parts.realtime !== null) {
      realtime = await openRealtime(files, { name: parts.realtime, tables }, progress)
    }
  } catch (error) {
    close()
    throw error
  }
  if (isEmpty(parts, firestore, realtime)) {
    close()
    throw exportInvalid(
      'The export has no documents.',
      explanation({ next: 'Check that the database of the export is the one that has documents.' }),
    )
  }
  const conversions = new Conversions()
  const taken = new Set<string>()
  const collections: SourceCollection[] = []
  if (firestore !== null) collections.push(...firestoreCollections(firestore, conversions, taken))
  if (realtime !== null) collections.push(...realtimeCollections(realtime, conversions, taken))
  if (parts.hasUsers) collections.push(usersCollection(files, tableName('auth users', taken)))
  return {
    product: 'Firebase',
    collections,
    files: () => storedFiles(files),
    conversions: () => conversions.all(),
    noCounterpart: () => withoutCounterpart(files, parts, realtime),
    close,
  }
}

function isEmpty(
  { hasUsers, hasStorage }: Parts,
  firestore: FirestoreExport | null,
  realtime: RealtimeExport | null,
): boolean {
  const spools = [firestore?.spool, realtime?.spool]
  return !hasUsers && !hasStorage && spools.every((spool) => (spool?.names.length ?? 0) === 0)
}

interface Parts {
  /** Names of the files of a managed export of Firestore, or null. */
  readonly managed: readonly string[] | null
  readonly hasJson: boolean
  /** Name of the file of a Realtime Database, or null. */
  readonly realtime: string | null
  readonly hasUsers: boolean
  readonly hasStorage: boolean
}

/** Returns the parts that the directory has. Throws CLIENT_EXPORT_INVALID if it has none. */
function partsOf(files: ExportFiles, tables: readonly TablePath[]): Parts {
  const outside = files.names.filter((name) => !name.startsWith(STORAGE))
  const parts: Parts = {
    managed: hasManagedExport(outside) ? outside.filter(isManagedName) : null,
    hasJson: files.has(FIRESTORE),
    realtime: realtimeFile(files),
    hasUsers: files.has(USERS),
    hasStorage: outside.length < files.names.length,
  }
  const { managed, hasJson, realtime, hasUsers, hasStorage } = parts
  if (managed === null && !hasJson && realtime === null && !hasUsers && !hasStorage) {
    throw exportInvalid(
      'The export has neither a managed export of Firestore nor ' +
        `${FIRESTORE}, database.json, ${USERS} or ${STORAGE}.`,
      explanation({
        next: 'Give the files these names at the top of one directory; see `svc docs importing`.',
      }),
    )
  }
  if (managed !== null && hasJson) {
    throw exportInvalid(
      `The export has Firestore twice: a managed export and ${FIRESTORE}.`,
      explanation({ next: `Remove ${FIRESTORE}: the managed export has every type.` }),
    )
  }
  if (tables.length > 0 && realtime === null) {
    throw exportInvalid(
      'The export has no Realtime Database for --table.',
      explanation({ next: 'Put its JSON file into the directory as database.json.' }),
    )
  }
  return parts
}

async function* storedFiles(files: ExportFiles): AsyncGenerator<SourceFile> {
  for (const path of files.names) {
    if (!path.startsWith(STORAGE)) continue
    yield {
      fileId: importedId('fil', 'firebase', path),
      key: `firebase/${path.slice(STORAGE.length)}`,
      contentType: BINARY,
      bytes: files.sizeOf(path),
      sha256: null,
      read: () => files.read(path),
    }
  }
}

function withoutCounterpart(
  files: ExportFiles,
  { managed, hasJson, realtime: database, hasUsers, hasStorage }: Parts,
  realtime: RealtimeExport | null,
): readonly string[] {
  const known = new Set([...(managed ?? []), ...(database === null ? [] : [database])])
  if (hasUsers) known.add(USERS)
  if (hasJson) known.add(FIRESTORE)
  const unread = files.names.filter((name) => !known.has(name) && !name.startsWith(STORAGE))
  const lines: string[] = []
  if (hasUsers) {
    lines.push('Authentication: password hashes, salts, second factors. The users come over.')
  }
  if (hasStorage) {
    lines.push(
      'Storage: content types, metadata and tokens of URLs; texts with URLs stay as they are.',
    )
  }
  if (hasJson) {
    lines.push(
      `${FIRESTORE}: numbers that are not finite are null in it, and bytes may be objects.`,
    )
  }
  if (realtime !== null && realtime.outside.count > 0) {
    const { count, first } = realtime.outside
    lines.push(`Realtime Database: ${count} values outside of tables, such as ${first}.`)
  }
  if (unread.length > 0) {
    lines.push(`${unread.length} other files, which are not read, such as ${unread[0]}.`)
  }
  return [
    ...lines,
    'Security rules: check them in the Functions; `svc docs functions`.',
    'Cloud Functions, indexes, time-to-live policies, Remote Config, Messaging.',
  ]
}
