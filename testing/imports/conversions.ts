/** Converts an export in a test, and reads what was written. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { ExportFiles } from '../../src/client/imports/archives/export-files.ts'
import { openExport } from '../../src/client/imports/archives/open-export.ts'
import { convert } from '../../src/client/imports/conversion.ts'
import { OutputDirectory } from '../../src/client/imports/output/output-directory.ts'
import type { ImportReport } from '../../src/client/imports/output/reports.ts'
import type { Progress, Source } from '../../src/client/imports/source.ts'
import type { Json } from '../../src/value/strict-json.ts'

export interface Converted {
  readonly report: ImportReport
  readonly directory: string
  readonly schema: string
  /** Documents of a table, in the order of the file. */
  documents(table: string): Record<string, Json>[]
  text(name: string): string
  /** All files with their contents. */
  all(): Record<string, string>
}

const PROGRESS: Progress = { step: () => {}, check: () => {} }

/** Converts an archive, or the export at a path. */
export async function converted(
  exported: Uint8Array | string,
  openSource: (files: ExportFiles, progress: Progress) => Promise<Source>,
): Promise<Converted> {
  const home = mkdtempSync(join(tmpdir(), 'svc-import-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const path = typeof exported === 'string' ? exported : join(home, 'export.zip')
  if (typeof exported !== 'string') writeFileSync(path, exported)
  const files = await openExport(path)
  const directory = join(home, 'out')
  const output = OutputDirectory.create(directory)
  let report: ImportReport
  try {
    const source = await openSource(files, PROGRESS)
    try {
      report = await convert(source, output, PROGRESS)
    } finally {
      source.close()
    }
    output.commit()
  } finally {
    output.discard()
  }
  const text = (name: string) => readFileSync(join(directory, name), 'utf8')
  return {
    report,
    directory,
    schema: text('schema.ts'),
    documents: (table) =>
      text(`data/${table}.jsonl`)
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
    text,
    all() {
      const names = readdirSync(directory, { recursive: true, withFileTypes: true })
      const paths = names
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
      return Object.fromEntries(paths.sort().map((name) => [name, text(name)]))
    },
  }
}
