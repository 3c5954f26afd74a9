/**
 * The documents of `svc docs`: writes the references among src/docs/*.md, the table of the guide
 * to changes of a schema, their list in README.md,
 * the tables of folders in src/README.md and below it, the list of decisions, and every document
 * as one TypeScript module of text, with another one of the parts of the site. `--check` changes
 * nothing and fails if something is stale.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../src/errors/assert.ts'
import { accessDocument } from './docs/access.ts'
import { cliDocument } from './docs/cli.ts'
import { DECISIONS, withDecisions } from './docs/decisions.ts'
import { doctorDocument } from './docs/doctor.ts'
import { errorsDocument } from './docs/errors.ts'
import { withFolderTable, withLayerTable } from './docs/folders.ts'
import { limitsDocument } from './docs/limits.ts'
import { between, table } from './docs/markdown.ts'
import { metricsDocument } from './docs/metrics.ts'
import { SCHEMA_CHANGES, withSchemaChanges } from './docs/schema-changes.ts'
import { settingsDocument } from './docs/settings.ts'
import { renderSiteModule, SITE_MODULE } from './docs-site/assets.ts'
import { updateFiles } from './generated-files.ts'
import { LAYERS } from './tidy/layers.ts'

export const DOCS = 'src/docs'
const MODULE = `${DOCS}/embedded.generated.ts`
const MAP = 'src/README.md'
const README = 'README.md'
const DECISION_LIST = `${DECISIONS}/${README}`

/** The generated documents. Every other file of src/docs is a guide. */
export const REFERENCES: Readonly<Record<string, (root: string) => Promise<string> | string>> = {
  access: accessDocument,
  cli: cliDocument,
  doctor: doctorDocument,
  errors: errorsDocument,
  limits: limitsDocument,
  metrics: metricsDocument,
  settings: settingsDocument,
}

const TOPIC_FILE = /^([a-z][a-z0-9-]*)\.md$/
const TITLE = /^# (\S.*)\n/

/** The guides by topic: a Markdown file whose first line is its title. */
export function readGuides(root: string): Record<string, string> {
  const guides: Record<string, string> = {}
  for (const file of readdirSync(join(root, DOCS)).filter((name) => name.endsWith('.md'))) {
    const topic = TOPIC_FILE.exec(file)?.[1]
    assert(topic !== undefined, `${DOCS}/${file} is not named some-topic.md`)
    if (!(topic in REFERENCES)) guides[topic] = readFileSync(join(root, DOCS, file), 'utf8')
  }
  return guides
}

/** Renders the generated files, by path. The same sources give the same bytes. */
export async function renderDocs(root: string): Promise<Record<string, string>> {
  const references: Record<string, string> = {}
  for (const [topic, render] of Object.entries(REFERENCES)) references[topic] = await render(root)
  const guides = readGuides(root)
  guides[SCHEMA_CHANGES] = withSchemaChanges(guides[SCHEMA_CHANGES]!)
  const documents = { ...guides, ...references }
  for (const [topic, text] of Object.entries(documents)) {
    assert(TITLE.test(text), `${DOCS}/${topic}.md does not begin with a line "# Title"`)
  }
  const files = Object.entries(references).map(([topic, text]) => [`${DOCS}/${topic}.md`, text])
  const hasReadme = (folder: string): boolean => existsSync(join(root, 'src', folder, 'README.md'))
  const map = withFolderTable(readFileSync(join(root, MAP), 'utf8'), hasReadme)
  const decisions = withDecisions(readFileSync(join(root, DECISION_LIST), 'utf8'), root)
  const insides = Object.keys(LAYERS).flatMap((folder) => {
    const path = `src/${folder}/README.md`
    const text = existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : ''
    // A page may describe its folders in more words than the order has.
    return text.includes('<!-- layers:') ? [[path, withLayerTable(text, folder)]] : []
  })
  const readme = between(readFileSync(join(root, README), 'utf8'), 'documents', lists(documents))
  return {
    ...Object.fromEntries(files),
    [`${DOCS}/${SCHEMA_CHANGES}.md`]: guides[SCHEMA_CHANGES],
    [README]: readme,
    [MAP]: map,
    [DECISION_LIST]: decisions,
    ...Object.fromEntries(insides),
    [MODULE]: embedded(documents),
    [SITE_MODULE]: await renderSiteModule(root, readme),
  }
}

/** The guides with their titles, then the references, whose names say what they have. */
function lists(documents: Readonly<Record<string, string>>): string {
  const topics = Object.keys(documents).sort()
  const link = (topic: string): string => `[${topic}](${DOCS}/${topic}.md)`
  const guides = topics
    .filter((topic) => !(topic in REFERENCES))
    .map((topic) => [link(topic), TITLE.exec(documents[topic]!)![1]!])
  const references = topics.filter((topic) => topic in REFERENCES).map(link)
  return `${table(['Guide', ''], guides)}\n${wrapped(`References: ${references.join(', ')}.`)}`
}

/** Breaks a text between words, so that its lines have at most 100 columns. */
function wrapped(text: string): string {
  return text.replace(/(.{1,100})(?: |$)/g, '$1\n')
}

function embedded(documents: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(documents).sort(([a], [b]) => (a < b ? -1 : 1))
  return (
    '/** Generated from src/docs by build/embed-docs.ts. Do not edit. */\n\n' +
    '/** The documents by topic. The first line of each is its title. */\n' +
    'export const DOCUMENTS: Readonly<Record<string, string>> = ' +
    `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`
  )
}

if (import.meta.main) updateFiles(await renderDocs(join(import.meta.dirname, '..')))
