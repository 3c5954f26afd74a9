/** The report of an import: `report.json` for programs, `report.md` for people. */
import type { Json } from '../../../value/strict-json.ts'
import { printable } from '../../visible-text.ts'

export interface Renaming {
  readonly from: string
  readonly to: string
}

export interface CollectionReport {
  /** The name in the export. */
  readonly source: string
  readonly table: string
  /** Documents that `data/TABLE.jsonl` has. */
  readonly documents: number
  /** Documents in `left-out/TABLE.jsonl`, with the reasons. */
  readonly leftOut: number
  readonly reasons: readonly string[]
  /** SHA-256 of the documents as the export has them, one after the other. */
  readonly sourceDigest: string
  /** DocumentsDigest of the documents in `data/TABLE.jsonl`. */
  readonly digest: string
  readonly renamed: readonly Renaming[]
  /** Fields whose IDs stay texts, since other texts stand there too. */
  readonly textIds: readonly string[]
  readonly indexes: readonly string[]
}

export interface Conversion {
  readonly what: string
  readonly count: number
}

export interface ImportReport {
  readonly version: 1
  readonly source: string
  readonly collections: readonly CollectionReport[]
  readonly files: { readonly count: number; readonly bytes: number }
  readonly conversions: readonly Conversion[]
  readonly noCounterpart: readonly string[]
}

export function reportJson(report: ImportReport): string {
  return `${JSON.stringify(report as unknown as Json, null, 2)}\n`
}

export function reportText(report: ImportReport): string {
  const { source, collections, files, conversions, noCounterpart } = report
  const rows = collections.map(({ source: from, table, documents, leftOut }) => {
    return `| ${cell(from)} | ${table} | ${documents} | ${leftOut} |`
  })
  const digests = collections.map(({ table, sourceDigest, digest }) => {
    return `| ${table} | \`${sourceDigest}\` | \`${digest}\` |`
  })
  return [
    `# Import from ${source}`,
    '',
    '## Documents',
    '',
    '| In the export | Table | Documents | Left out |',
    '|---|---|---|---|',
    ...rows,
    '',
    `Files: ${files.count} with ${files.bytes} bytes.`,
    '',
    'The first digest is SHA-256 of the documents as the export has them. The second one is that',
    'of the documents in `data`, in any order: `svc import verify` compares it with a server.',
    '',
    '| Table | Export | Result |',
    '|---|---|---|',
    ...digests,
    ...section('Left out', collections.flatMap(leftOutLines)),
    ...section('Renamed', collections.flatMap(renamedLines)),
    ...section('Converted', [
      ...conversions.map(({ what, count }) => `${what}: ${count}.`),
      ...collections.flatMap(({ table, textIds }) =>
        textIds.map((field) => {
          return `${table}: ${cell(field)} has IDs beside other texts, so all of it stays text.`
        }),
      ),
    ]),
    ...section('Without a counterpart', noCounterpart.map(cell)),
    '',
  ].join('\n')
}

function leftOutLines({ table, leftOut, reasons }: CollectionReport): readonly string[] {
  if (leftOut === 0) return []
  return [`${table}: ${leftOut}. ${reasons.map(cell).join(' ')}`]
}

function renamedLines({ source, table, renamed }: CollectionReport): readonly string[] {
  const own = source === table ? [] : [`The collection ${cell(source)} is the table ${table}.`]
  return [...own, ...renamed.map(({ from, to }) => `${table}: ${cell(from)} is the field ${to}.`)]
}

function section(title: string, items: readonly string[]): readonly string[] {
  if (items.length === 0) return []
  return ['', `## ${title}`, '', ...items.map((item) => `- ${item}`)]
}

/** Text of the export inside Markdown. */
function cell(text: string): string {
  return printable(text).replace(/[|`*_<>[\]\\]/g, '\\$&')
}
