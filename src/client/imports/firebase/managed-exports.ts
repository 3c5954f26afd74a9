/** Managed exports of Cloud Firestore: `output-NUMBER` in the log format of LevelDB. */
import { ValidationError } from '../../../value/validation-error.ts'
import { exportInvalid } from '../archives/export-fault.ts'
import { type ExportFiles, readWhole } from '../archives/export-files.ts'
import { Spool } from '../archives/spools.ts'
import type { Progress } from '../source.ts'
import { type DocumentPath, fieldsOf, pathOf } from './entities.ts'
import { collectionName, type FirestoreExport } from './firestore.ts'
import { recordsOf } from './log-records.ts'
import { parseMessage } from './protobuf.ts'

const OUTPUT = /^(?:.*\/)?output-[0-9]+$/
const METADATA = /^(?:.*\/)?[^/]+\.export_metadata$/
const METADATA_BYTES_MAX = 16 * 1024 * 1024
const WHOLE = '.overall_export_metadata'

/** Returns whether the name is one of a managed export. */
export function isManagedName(name: string): boolean {
  return OUTPUT.test(name) || METADATA.test(name) || name.endsWith(WHOLE)
}

/** Returns whether the names are those of a managed export, be it one that is not whole. */
export function hasManagedExport(names: readonly string[]): boolean {
  return names.some((name) => OUTPUT.test(name) || name.endsWith(WHOLE))
}

/** Reads the files of these names. Throws CLIENT_EXPORT_INVALID. */
export async function openManagedExport(
  files: ExportFiles,
  names: readonly string[],
  progress: Progress,
): Promise<FirestoreExport> {
  await requireWhole(files, names)
  const spool = new Spool()
  try {
    const outputs = names.filter((name) => OUTPUT.test(name))
    const database = await spoolEntities(files, outputs, { spool, progress })
    return { spool, database, decode }
  } catch (error) {
    spool.remove()
    throw error
  }
}

/** Throws CLIENT_EXPORT_INVALID if the export lacks one of its files. */
async function requireWhole(files: ExportFiles, names: readonly string[]): Promise<void> {
  if (!names.some((name) => name.endsWith(WHOLE))) {
    throw exportInvalid(`The export of Firestore has no file *${WHOLE}, so it may not be whole.`)
  }
  for (const name of names.filter((each) => METADATA.test(each))) {
    const metadata = await readWhole(files, name, METADATA_BYTES_MAX)
    const named =
      Buffer.from(metadata)
        .toString('latin1')
        .match(/output-[0-9]+/g) ?? []
    const directory = name.slice(0, name.lastIndexOf('/') + 1)
    const missing = named.find((output) => !files.has(directory + output))
    if (missing !== undefined) throw exportInvalid(`${directory}${missing} is missing.`)
  }
}

/** Sorts the entities of all files by collection, and returns the database that they are of. */
async function spoolEntities(
  files: ExportFiles,
  outputs: readonly string[],
  { spool, progress }: { readonly spool: Spool; readonly progress: Progress },
): Promise<string> {
  let found: string | null = null
  for (const output of outputs) {
    progress.step(`reading ${output}`)
    for await (const record of recordsOf(output, files.read(output))) {
      progress.check()
      const { database, names } = pathIn(output, record)
      found ??= database
      if (found !== database) throw exportInvalid('The export has more than one database.')
      spool.add(collectionName(names), record)
    }
  }
  spool.flush()
  return found ?? ''
}

function pathIn(output: string, record: Uint8Array): DocumentPath {
  try {
    return pathOf(parseMessage(record))
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw exportInvalid(`${output} has a record that is no document: ${error.message}.`, error)
  }
}

const decode: FirestoreExport['decode'] = (record) => {
  const entity = parseMessage(record)
  const { names } = pathOf(entity)
  const entry = { path: names.join('/'), entity: Buffer.from(record).toString('base64') }
  return {
    names,
    raw: Buffer.from(JSON.stringify(entry)),
    fields: (reading) => fieldsOf(entity, reading),
  }
}
