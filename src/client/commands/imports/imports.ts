/** `svc import`: data of another backend as a schema, JSON lines and files. */
import { Fault } from '../../../errors/fault.ts'
import {
  argument,
  type CommandSpec,
  type Context,
  command,
  repeatedOption,
  requiredOption,
} from '../../contexts.ts'
import type { ExportFiles } from '../../imports/archives/export-files.ts'
import type { ImportReport } from '../../imports/output/reports.ts'
import type { Progress, Source } from '../../imports/source.ts'
import { requireTools } from '../../packages.ts'
import { resolvePath } from '../../roots/roots.ts'
import { formatBytes } from '../../sizes.ts'
import { importFilesCommand } from './uploads.ts'
import { importVerifyCommand } from './verify.ts'

const OUT = { out: requiredOption('DIR', 'The new directory, or an empty one') } as const
const DETAILS = [
  'Writes schema.ts, data/TABLE.jsonl for `svc data import`, the files, and report.md with what',
  'has no counterpart. The directory appears when it is whole. Nothing of the export is run.',
]

const convex: CommandSpec = command({
  name: 'import convex',
  summary: 'Convert a snapshot export of Convex',
  details: DETAILS,
  positionals: [argument('EXPORT', 'The ZIP archive of `npx convex export`, or its directory')],
  options: OUT,
  examples: ['svc import convex snapshot.zip --out from-convex'],
  run: (context, { out }, [path]) =>
    convertExport(context, { path: path!, out }, async (files) => {
      const { openConvex } = await import('../../imports/convex/convex.ts')
      return openConvex(files)
    }),
})

const pocketbase: CommandSpec = command({
  name: 'import pocketbase',
  summary: 'Convert a backup of PocketBase',
  details: DETAILS,
  positionals: [argument('EXPORT', 'The ZIP archive of a backup, or a copy of pb_data')],
  options: OUT,
  examples: ['svc import pocketbase backup.zip --out from-pocketbase'],
  async run(context, { out }, [path]) {
    const tools = await requireTools(context, 'Reading a backup of PocketBase')
    await convertExport(context, { path: path!, out }, async (files) => {
      const { openBackup } = await import('../../imports/pocketbase/backups.ts')
      return openBackup(files, (path) => tools.openForeignDatabase(path))
    })
  },
})

const parse: CommandSpec = command({
  name: 'import parse',
  summary: 'Convert the classes of Parse',
  details: DETAILS,
  positionals: [argument('EXPORT', 'A directory or a ZIP archive with CLASS.json for each class')],
  options: OUT,
  examples: ['svc import parse classes --out from-parse'],
  run: (context, { out }, [path]) =>
    convertExport(context, { path: path!, out }, async (files) => {
      const { openParse } = await import('../../imports/parse/parse.ts')
      return openParse(files)
    }),
})

const firebase: CommandSpec = command({
  name: 'import firebase',
  summary: 'Convert exports of Firebase',
  details: DETAILS,
  positionals: [
    argument('EXPORT', 'A directory, a ZIP archive or one JSON file; see `svc docs importing`'),
  ],
  options: {
    ...OUT,
    table: repeatedOption(
      'PATH',
      'Realtime Database: the path whose children are documents, such as messages/*',
    ),
  },
  examples: [
    'svc import firebase exports --out from-firebase',
    "svc import firebase exports --out from-firebase --table 'messages/*'",
  ],
  async run(context, { out, table }, [path]) {
    const { parseTablePaths } = await import('../../imports/firebase/table-paths.ts')
    const tables = parseTablePaths(table ?? [])
    await convertExport(context, { path: path!, out }, async (files, progress) => {
      const { openFirebase } = await import('../../imports/firebase/firebase.ts')
      return openFirebase(files, progress, tables)
    })
  },
})

export const importCommands: readonly CommandSpec[] = [
  convex,
  pocketbase,
  parse,
  firebase,
  importFilesCommand,
  importVerifyCommand,
]

interface Conversion {
  readonly path: string
  readonly out: string
}

async function convertExport(
  context: Context,
  { path, out }: Conversion,
  openSource: (files: ExportFiles, progress: Progress) => Promise<Source>,
): Promise<void> {
  const { openExport } = await import('../../imports/archives/open-export.ts')
  const { convert } = await import('../../imports/conversion.ts')
  const { OutputDirectory } = await import('../../imports/output/output-directory.ts')
  const target = resolvePath(context.environment, out)
  const files = await openExport(resolvePath(context.environment, path))
  let step = 'reading the export'
  const progress: Progress = {
    step(text) {
      step = text
    },
    check() {
      if (context.signal.aborted) throw new Fault('CLIENT_INTERRUPTED')
    },
  }
  const work = async (): Promise<ImportReport> => {
    const output = OutputDirectory.create(target)
    let source: Source | null = null
    try {
      source = await openSource(files, progress)
      const report = await convert(source, output, progress)
      output.commit()
      return report
    } finally {
      source?.close()
      output.discard()
    }
  }
  try {
    const report = await context.output.progress(() => step, context.uninterrupted(work()))
    await context.output.result({ ...report, directory: target } as never, lines(report, target))
  } finally {
    files.close()
  }
}

function lines({ collections, files }: ImportReport, target: string): readonly string[] {
  const documents = collections.reduce((sum, each) => sum + each.documents, 0)
  const leftOut = collections.reduce((sum, each) => sum + each.leftOut, 0)
  return [
    `Wrote ${target}: ${documents} documents of ${collections.length} tables, ` +
      `${files.count} files (${formatBytes(files.bytes)}).`,
    ...(leftOut === 0 ? [] : [`${leftOut} documents are left out; report.md says why.`]),
    'Read report.md, then follow README.md in that directory.',
  ]
}
