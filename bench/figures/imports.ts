/** Compares `svc data import` with Mutations that insert as many documents at once. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { BODY, int64, mutateAll, mutationBody, TEXTS, TITLE } from '../calls.ts'
import { type Figure, median, type Side } from '../figure.ts'
import { type BenchInstallation, benchInstallation, type Documents } from '../installation.ts'
import { STORES } from '../tables.ts'

const COUNT = 100_000
/** Documents of one batch of an import, and batches in flight (decision 0086). */
const BATCH = 500
const IN_FLIGHT = 4

export const IMPORTS: readonly Figure[] = (['sqlite', 'postgres'] as const).map((documents) => ({
  name: `import of 100,000 documents, ${STORES[documents]}`,
  baseline: `Mutations that insert ${BATCH} each`,
  ratioMin: 0.5,
  documents,
  measure: async (_, { rounds }) => measureImports(documents, rounds),
}))

/** Uses an installation of its own, since other figures count on the sizes of their tables. */
async function measureImports(documents: Documents, rounds: number) {
  const installation = await benchInstallation(documents)
  try {
    const imports: number[] = []
    const inserts: number[] = []
    for (let round = 0; round < rounds; round++) {
      imports.push(await perSecond(() => importFile(installation, round)))
      inserts.push(await perSecond(() => insertAll(installation, round)))
    }
    const ratio = median(imports.map((rate, round) => rate / inserts[round]!))
    return { ratio, candidate: sideOf(imports), baseline: sideOf(inserts), failure: null }
  } finally {
    await installation.dispose()
  }
}

async function importFile({ directory, svc }: BenchInstallation, round: number): Promise<void> {
  const file = join(directory, `import-${round}.jsonl`)
  const line = (number: number) => JSON.stringify({ number, title: TITLE, body: BODY })
  const lines = Array.from({ length: COUNT }, (_, i) => line(round * COUNT + i))
  writeFileSync(file, `${lines.join('\n')}\n`)
  await svc(['data', 'import', 'few', file, '--remote', '--target', 'channel:production'])
}

async function insertAll({ application }: BenchInstallation, round: number): Promise<void> {
  const bodies = Array.from({ length: COUNT / BATCH }, (_, i) => {
    const from = round * COUNT + i * BATCH
    return mutationBody('many.fill', { from: int64(from), to: int64(from + BATCH), ...TEXTS })
  })
  await mutateAll(application, bodies, IN_FLIGHT)
}

async function perSecond(insert: () => Promise<void>): Promise<number> {
  const startedMillis = performance.now()
  await insert()
  return COUNT / ((performance.now() - startedMillis) / 1_000)
}

function sideOf(rates: readonly number[]): Side {
  return { value: `${median(rates).toFixed(0)}/s`, p50Micros: null, p99Micros: null }
}
