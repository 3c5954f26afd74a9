/** `svc backup keygen`: a key of age, in the form of `age-keygen`. It needs no server. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { encodeKey } from '../../../value/backups/recipients.ts'
import { type CommandSpec, command, requiredOption } from '../../contexts.ts'
import { resolvePath } from '../../roots/roots.ts'
import { withSecretFile } from '../../secret-files.ts'

export const keygenCommand: CommandSpec = command({
  name: 'backup keygen',
  summary: 'Make the key that opens backups, and print its recipient',
  details: [
    'The file has the identity, without which no backup can be opened: keep it, in two places,',
    'away from the server. The recipient is public and goes into SERVICE_BACKUP_RECIPIENTS. It is',
    'the same as what `age-keygen` makes.',
  ],
  options: { out: requiredOption('FILE', 'The new private file of the identity') },
  examples: ['svc backup keygen --out backup.key'],
  async run(context, { out: file }) {
    const { recipient, identity } = makeKey()
    const path = resolvePath(context.environment, file)
    const text = `# public key: ${recipient}\n${identity}`
    await withSecretFile(
      path,
      async () => text,
      (made) => made,
    )
    await context.output.result({ version: 1, recipient, file: path }, [recipient])
    await context.output.note(`${path} has the identity that opens the backups: keep it safe.`)
  },
})

function makeKey(): { readonly recipient: string; readonly identity: string } {
  const { publicKey, privateKey } = generateKeyPairSync('x25519')
  return {
    recipient: encodeKey('age', raw(publicKey, 'x')),
    identity: encodeKey('age-secret-key-', raw(privateKey, 'd')).toUpperCase(),
  }
}

function raw(key: KeyObject, part: 'd' | 'x'): Buffer {
  return Buffer.from(key.export({ format: 'jwk' })[part]!, 'base64url')
}
