/** Readings of stored documents, through reads of the store: indexes, and metadata of files. */
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { nameOf, sampleIndexes } from '../../../documents/index-sample.ts'
import { KEY_END } from '../../../documents/key-encoding.ts'
import { keySuccessor } from '../../../documents/keys.ts'
import type { DocumentStore } from '../../../documents/store.ts'
import type { System } from '../../../system/system.ts'
import { FILE_DOCUMENTS, PART_DOCUMENTS } from '../../../value/files/files.ts'
import { decodeStored } from '../../../value/stored.ts'
import type { DocumentsReading, StoredFilesReading } from '../readings.ts'
import { type Contents, countOrphans } from './files.ts'
import { inSteps, pause } from './steps.ts'

const ENTRIES_MAX = 50
const INDEXES_MAX = 256
/** Files whose metadata is read; with more, orphans are not looked for. */
const FILES_MAX = 5_000
const PAGE_FILES = 100
const TEXT_UNITS_MAX = 256 * 1024

export async function readDocuments(
  store: DocumentStore,
  system: System,
): Promise<Omit<DocumentsReading, 'recordedSequence'>> {
  const { latestSequence } = store
  const indexes = store.listIndexes()
  const { sampled, defects } = await sampleIndexes(store, {
    entriesMax: ENTRIES_MAX,
    indexesMax: INDEXES_MAX,
    randomBytes: (length) => system.randomBytes(length),
    pause,
  })
  const building = indexes.filter(({ state }) => state === 'building').map(nameOf)
  return { latestSequence, indexes: indexes.length, building, sampled, defects }
}

/** Compares metadata of files with the directory of their bytes. */
export async function readStoredFiles(
  store: DocumentStore,
  { root, stored, system }: { root: string; stored: Contents; system: System },
): Promise<StoredFilesReading> {
  const contents = new Map<string, number>()
  let files = 0
  let isComplete = true
  for (const table of [FILE_DOCUMENTS, PART_DOCUMENTS]) {
    const index = store
      .listIndexes()
      .find((each) => each.table === table && each.fields.length === 0 && each.state === 'ready')
    let lower: string | null = index === undefined ? null : ''
    while (lower !== null && isComplete) {
      const page = await store.range({
        index: index!.id,
        lower,
        upper: KEY_END,
        order: 'asc',
        limit: PAGE_FILES,
        textUnitsMax: TEXT_UNITS_MAX,
        snapshot: store.latestSequence,
      })
      for (const { document } of page.documents) {
        const fields = decodeStored(document.text) as ReadonlyMap<string, unknown>
        contents.set(String(fields.get('sha256')), Number(fields.get('size')))
      }
      files += page.documents.length
      isComplete = files < FILES_MAX
      const last = page.documents.at(-1)
      lower = page.exhausted || last === undefined ? null : keySuccessor(last.key)
      await pause()
    }
  }
  const missing: string[] = []
  await inSteps([...contents], ([sha256, size]) => {
    const path = join(root, 'files/sha256', sha256.slice(0, 2), sha256.slice(2))
    if (lstatSync(path, { throwIfNoEntry: false })?.size !== size) missing.push(sha256)
  })
  const orphaned = isComplete
    ? await countOrphans(stored, (sha256) => contents.has(sha256), system)
    : null
  return { files, isComplete, missing, orphaned, isPartial: stored.isPartial }
}
