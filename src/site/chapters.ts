/** The order of the documents: chapters, and the documents of each by name. */

export interface Chapter {
  readonly title: string
  /** Names of documents: topics of src/docs, or `contract/NAME`. */
  readonly documents: readonly string[]
}

/** The first page, which no chapter lists. */
export const FRONT = 'index'

const ORDER: readonly Chapter[] = [
  { title: 'Start', documents: ['dev', 'functions', 'documents', 'client', 'testing'] },
  {
    title: 'Develop',
    documents: [
      'calls',
      'realtime',
      'files',
      'identity',
      'configuration',
      'actions',
      'endpoints',
      'hooks',
      'scheduling',
      'migrations',
      'schema-changes',
      'importing',
      'agents',
    ],
  },
  {
    title: 'Operate',
    documents: [
      'setup',
      'operations',
      'operators',
      'console',
      'releases',
      'ci',
      'containers',
      'proxies',
      'security',
      'backup',
      'backups-format',
      'disaster',
      'moving',
      'upgrade',
      'origin',
      'monitoring',
      'logs',
      'traces',
      'data',
      's3',
    ],
  },
  {
    title: 'Reference',
    documents: ['cli', 'settings', 'errors', 'limits', 'metrics', 'access', 'doctor'],
  },
  {
    title: 'Contract',
    documents: ['contract/management', 'contract/application', 'contract/wire'],
  },
]

/** Returns the chapters of these documents. One that no chapter lists stands in the last. */
export function chaptersOf(names: readonly string[]): Chapter[] {
  const listed = ORDER.flatMap(({ documents }) => documents)
  const others = names.filter((name) => !listed.includes(name) && name !== FRONT).toSorted()
  return [...ORDER, { title: 'More', documents: others }]
    .map(({ title, documents }) => ({
      title,
      documents: documents.filter((name) => names.includes(name)),
    }))
    .filter(({ documents }) => documents.length > 0)
}
