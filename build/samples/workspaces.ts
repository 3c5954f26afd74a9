/** The Workspaces that contain the TypeScript samples of documents, whose types are checked. */

/** Returns the text of the sample at a place. */
export type TextAt = (place: string) => string

export interface SampleWorkspace {
  readonly name: string
  /** Returns the files by path. */
  readonly files: (at: TextAt) => Readonly<Record<string, string>>
}

const DOCS = 'src/docs'
const TABLES = "import { defineSchema, table, v } from 'svc'\n\n"

const schema = (tables: string): string => `${TABLES}export default defineSchema({\n${tables}\n})\n`
const functions = (names: string, text: string): string =>
  `import { ${names} } from 'svc'\n\n${text}\n`

/** Puts statements of a test into a function that has `backend`. */
const inTest = (name: string, text: string): string =>
  `export async function ${name}(backend: Backend): Promise<unknown[]> {\n${text}\n  return []\n}\n`

const SECRETS = `export const read = action({
  clients: ['confidential'],
  uses: { secrets: ['API_KEY'] },
  returns: v.null(),
  handler: async (ctx) => {
BODY
    const texts: (string | null)[] = [greeting, key]
    return texts.length === 2 ? null : null
  },
})`

const CHANGES = `${DOCS}/schema-changes.md`

export const SAMPLE_WORKSPACES: readonly SampleWorkspace[] = [
  {
    name: 'functions',
    files: (at) => ({
      'schema.ts': schema(`  payments: table({ amount: v.int64() }),
  posts: table({ text: v.string(), attachment: v.id('files') }),
  channels: table({ name: v.string() }).unique('byName', ['name']),`),
      'functions/payments.ts': at(`${DOCS}/actions.md#actions-requests-to-other-services 1`),
      'functions/posts.ts': at(`${DOCS}/files.md#upload 1`),
      'functions/downloads.ts': functions('action, v', at(`${DOCS}/files.md#download 1`)),
      'functions/pictures.ts': functions(
        'query, v',
        at(`${DOCS}/files.md#images-video-and-links 1`),
      ),
      'functions/channels.ts': at(`${DOCS}/functions.md#declared-errors 1`),
      'functions/greetings.ts': functions(
        'action, v',
        SECRETS.replace(
          'BODY',
          at(`${DOCS}/configuration.md#configuration-variables-and-secrets-of-functions 2`),
        ),
      ),
      'functions/seats.ts': at(`${DOCS}/scheduling.md#run-a-function-later 1`),
      'functions/digest.ts': functions(
        'internalMutation, v',
        `export const send = internalMutation({
  arguments: { most: v.int64() },
  handler: () => null,
})`,
      ),
      'functions/files.ts': functions(
        'internalMutation',
        'export const sweep = internalMutation({ handler: () => null })',
      ),
      'crons.ts': at(`${DOCS}/scheduling.md#run-a-function-at-fixed-times 1`),
      'tests/samples.test.ts': [
        "import { testEnvironment } from 'svc/test'\nimport { api } from '../_generated/api'\n",
        'type Backend = Awaited<ReturnType<typeof testEnvironment>>\n',
        inTest('time', at(`${DOCS}/testing.md#time-and-scheduled-work 1`)),
        inTest('events', `${at(`${DOCS}/testing.md#events-of-other-services 1`)}\nvoid deliveryId`),
        inTest(
          'migration',
          `${at(`${DOCS}/migrations.md#development-and-tests 1`)}
          return [processed, changed]`,
        ),
        `export async function requests() {\n${at(`${DOCS}/testing.md#requests-of-actions 1`)}
          return await backend.documents('payments')\n}\n`,
      ].join('\n'),
    }),
  },
  {
    name: 'migrations.md',
    files: (at) => ({
      'schema.ts': schema(
        '  tasks: table({ title: v.string(), priority: v.optional(v.string()) }),',
      ),
      'migrations.ts': at(`${DOCS}/migrations.md#declare-a-migration 1`),
    }),
  },
  {
    name: 'dev.md',
    files: (at) => ({
      'schema.ts': schema('  notes: table({ text: v.optional(v.string()), body: v.string() }),'),
      'migrations.ts': at(`${DOCS}/dev.md#when-documents-do-not-fit-the-schema 1`),
    }),
  },
  {
    name: 'schema-changes.md, section 2, the first Release',
    files: (at) => {
      const text = at(`${CHANGES}#2-add-a-field-that-every-document-has 2`)
      const [tables = '', migrations = ''] = text.split(/^\/\/ migrations\.ts.*$/m)
      return { 'schema.ts': schema(tables), 'migrations.ts': migrations }
    },
  },
  {
    name: 'schema-changes.md, section 2, the second Release',
    files: (at) => ({
      'schema.ts': schema('  tasks: table({ title: v.string(), length: v.int64() }),'),
      'migrations.ts': at(`${CHANGES}#2-add-a-field-that-every-document-has 4`),
    }),
  },
  {
    name: 'schema-changes.md, section 4, the first Release',
    files: (at) => ({
      'schema.ts': schema(at(`${CHANGES}#4-rename-a-field 1`).split('\n')[1]!),
      'migrations.ts': functions('migration', at(`${CHANGES}#4-rename-a-field 2`)),
    }),
  },
  {
    name: 'schema-changes.md, section 4, the second Release',
    files: (at) => ({ 'schema.ts': schema(at(`${CHANGES}#4-rename-a-field 4`)) }),
  },
  {
    name: 'schema-changes.md, section 6',
    files: (at) => ({
      'schema.ts': schema(
        "  tasks: table({ state: v.open(v.union(v.literal('open'), v.literal('later'))) }),",
      ),
      'migrations.ts': functions('migration', at(`${CHANGES}#6-remove-a-choice 1`)),
    }),
  },
  {
    name: 'schema-changes.md, section 9',
    files: (at) => ({ 'schema.ts': schema(at(`${CHANGES}#9-change-an-object 2`)) }),
  },
]
