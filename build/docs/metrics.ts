/** The reference of metrics, from the table of their names. */
import { COUNTERS, GAUGES, HISTOGRAMS } from '../../src/telemetry/metrics/definitions.ts'
import { code, table } from './markdown.ts'

export function metricsDocument(): string {
  const parts = Object.entries({ Counters: COUNTERS, Gauges: GAUGES, Histograms: HISTOGRAMS })
  const sections = parts.map(([title, names]) => {
    const rows = Object.entries(names).map(([name, meaning]) => [code(name), meaning])
    return `## ${title}\n\n${table(['Name', 'Meaning'], rows)}`
  })
  return `${HEAD}\n${sections.join('\n')}`
}

const HEAD = `# Metrics: names and meanings

\`svc metrics\` and \`GET {base}/metrics\` show what the server counted since its start, as JSON
or, with \`Accept: text/plain\`, as OpenMetrics; \`text/plain; version=0.0.4\` is the older
format of Prometheus. [Monitoring](monitoring.md) says how to collect them.

A name ends with its unit: \`Micros\`, \`Bytes\` or \`Percent\`; a name without a unit is a count.
Metrics have no labels: the log has the usage of each Function (\`function.usage\`) and of each
Application Key (\`credential.usage\`), once a minute.
`
