/** `svc docs`: the references and guides that this version carries, without a server. */
import { suggestion } from '../command-line/arguments.ts'
import { command, optionalArgument } from '../contexts.ts'
import { usage } from '../usage.ts'

export const docsCommand = command({
  name: 'docs',
  summary: 'Show the references and guides of this version',
  details: ['Without a topic it lists them. It needs no server and no login.'],
  positionals: [optionalArgument('TOPIC', 'One of the list, such as cli')],
  options: {},
  examples: ['svc docs', 'svc docs settings'],
  async run({ output }, _, [topic]) {
    const { DOCUMENTS } = await import('../../docs/embedded.generated.ts')
    if (topic === undefined) {
      const topics = Object.entries(DOCUMENTS).map(([name, text]) => ({
        name,
        title: titleOf(text),
      }))
      const rows = topics.map(({ name, title }) => [name, title])
      return output.result({ version: 1, topics }, output.table(['TOPIC', 'TITLE'], rows))
    }
    if (!Object.hasOwn(DOCUMENTS, topic)) {
      const nearest = suggestion(topic, Object.keys(DOCUMENTS))
      throw usage(`Unknown topic.${nearest} \`svc docs\` lists the topics.`, docsCommand)
    }
    const text = DOCUMENTS[topic]!
    const document = { version: 1, topic, title: titleOf(text), text }
    await output.result(document, [text.trimEnd()])
  },
})

function titleOf(text: string): string {
  return text.slice('# '.length, text.indexOf('\n'))
}
