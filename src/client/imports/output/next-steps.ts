/** `README.md` of an import: the commands that come next. */
import { shellQuoted } from '../../../value/shell/shell-words.ts'
import type { ImportReport } from './reports.ts'

/** Returns the commands, in their order, as they are run inside the directory. */
export function nextSteps({ collections, files }: ImportReport): readonly string[] {
  const target = '--target channel:production --root ../app-root'
  return [
    'svc init --root ../app-root --workspace ../app --template empty',
    'cp schema.ts ../app/schema.ts',
    'svc release --root ../app-root --channel production',
    ...(files.count === 0 ? [] : ['svc import files . --root ../app-root']),
    ...collections
      .filter(({ documents }) => documents > 0)
      .map(({ table }) => {
        return `svc data import ${table} ${shellQuoted(`data/${table}.jsonl`)} ${target}`
      }),
    `svc import verify . ${target}`,
  ]
}

export function readmeText(report: ImportReport): string {
  return [
    `# Data from ${report.source}`,
    '',
    '- `schema.ts`: the tables, for a Workspace',
    '- `data`: the documents of each table, for `svc data import`',
    ...(report.files.count === 0
      ? []
      : ['- `files`: the stored files, and `manifest.jsonl` with their keys']),
    '- `report.md`, `report.json`: counts, digests, and what has no counterpart',
    '',
    'Read `report.md` first. Then run these commands in this directory. Between the first and the',
    'third one, start a server on the root and link it, as `svc init` says.',
    '',
    '```sh',
    ...nextSteps(report),
    '```',
    '',
    ...(report.files.count === 0
      ? []
      : [
          '`svc import files` stores the files and writes their IDs into `data`, so run it before',
          'the documents are imported.',
          '',
        ]),
  ].join('\n')
}
