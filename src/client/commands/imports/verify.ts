/** `svc import verify`: compares the documents of an Environment with those of an import. */

import type { Json } from '../../../value/strict-json.ts'
import { decodeTagged } from '../../../value/tagged.ts'
import { TypedId, type Value, type ValueObject } from '../../../value/values.ts'
import type { DocumentPage } from '../../../wire/data.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import { queryDocuments } from '../../../wire/operations/data.ts'
import { argument, type CommandSpec, command } from '../../contexts.ts'
import { DocumentsDigest } from '../../imports/documents/digests.ts'
import type { Remote } from '../../roots/remotes.ts'
import { resolvePath } from '../../roots/roots.ts'
import { TARGET } from '../data/tables.ts'
import { REMOTE } from '../operations.ts'
import { openTarget } from '../targets.ts'
import { readStoredIds, readTables } from './import-directories.ts'

const EXIT_DIFFERENT = 1

export const importVerifyCommand: CommandSpec = command({
  name: 'import verify',
  summary: 'Compare the documents of an Environment with those of an import',
  details: [
    'Reads every table of the import, and compares the number of its documents and the digest of',
    'their IDs and fields with report.json. Ends with 1 where one differs.',
  ],
  positionals: [argument('DIR', 'The directory that `svc import` wrote')],
  options: { ...REMOTE, target: TARGET },
  examples: ['svc import verify from-convex --target channel:production'],
  async run(context, options, [path]) {
    const directory = resolvePath(context.environment, path!)
    const tables = readTables(directory)
    const remote = await openTarget(context, options, importVerifyCommand)
    const manifestIds = new Map([...readStoredIds(directory)].map(([from, to]) => [to, from]))
    let current = ''
    const compare = async () => {
      const items = []
      for (const { table, documents, digest } of tables) {
        current = table
        const found = await digestOf(remote, { table, manifestIds })
        const isEqual = found.count === documents && found.hex === digest
        items.push({ table, documents: found.count, expected: documents, equal: isEqual })
      }
      return items
    }
    const items = await context.output.progress(() => `reading ${current}`, compare())
    const isEqual = items.every(({ equal }) => equal)
    if (!isEqual) context.exitWith(EXIT_DIFFERENT)
    await context.output.result({ version: 1, equal: isEqual, tables: items } as Json, [
      ...context.output.columns(items, {
        TABLE: 'table',
        DOCUMENTS: 'documents',
        EXPECTED: 'expected',
        DIGEST: ({ equal }) => (equal ? 'equal' : 'different'),
      }),
      isEqual
        ? 'All documents are those of the import.'
        : 'The documents differ: import the rest, or compare before they are changed.',
    ])
  },
})

async function digestOf(
  { call, target }: Pick<Remote, 'call'> & { readonly target: string },
  {
    table,
    manifestIds,
  }: { readonly table: string; readonly manifestIds: ReadonlyMap<string, string> },
): Promise<DocumentsDigest> {
  const digest = new DocumentsDigest()
  let after: string | undefined
  do {
    const page: DocumentPage = await call(queryDocuments, {
      body: { target, table, limit: PAGE_MAX, after },
    })
    for (const { id, value } of page.items) {
      const fields = decodeTagged(value as Json)
      digest.add(id, withManifestIds(fields, manifestIds) as ValueObject)
    }
    after = page.next ?? undefined
  } while (after !== undefined)
  return digest
}

/** Replaces the IDs of stored files by those that the manifest has. */
function withManifestIds(value: Value, ids: ReadonlyMap<string, string>): Value {
  if (ids.size === 0) return value
  if (value instanceof TypedId) return new TypedId(ids.get(value.id) ?? value.id)
  if (Array.isArray(value)) return value.map((item) => withManifestIds(item as Value, ids))
  if (!(value instanceof Map)) return value
  return new Map(
    [...(value as ValueObject)].map(([key, item]) => [key, withManifestIds(item, ids)]),
  )
}
