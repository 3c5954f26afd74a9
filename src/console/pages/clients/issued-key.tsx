/** A key right after it was made or revealed: the only place where the page has one. */
import { useEffect, useRef } from 'preact/hooks'
import type { ClientField, CredentialField } from '../../../wire/application-clients.ts'
import { OneTimeSecret } from '../../parts/secret.tsx'
import { Block, Shown } from '../../parts/shown.tsx'

export interface Issued {
  readonly credential: CredentialField
  readonly key: string
  readonly secretShownOnce: boolean
}

/** The use of a key of each kind: a sentence, and the line that has the key. */
const USES: Readonly<Record<ClientField['kind'], readonly string[]>> = {
  public: [
    'It may stand in the code of a web page or an app. Give it to the client of svc/client as ' +
      'applicationKey, or send it with each call in this header:',
    'X-Service-Key: THE-KEY',
  ],
  confidential: [
    'Keep it where the program reads its secrets, never in a web page, an app or a repository. ' +
      'The program sends it with each call in this header:',
    'X-Service-Key: THE-KEY',
  ],
  development: [
    'It publishes Workspaces and calls no Function. Keep it outside of the repository, in this ' +
      'variable of the environment of svc:',
    'SERVICE_DEVELOPMENT_KEY=THE-KEY',
  ],
}

/** The key is in the memory of this component alone, and is gone once it is closed. */
export function IssuedKey({
  issued: { credential, key, secretShownOnce },
  kind,
  close,
}: {
  issued: Issued
  kind: ClientField['kind']
  close: () => void
}) {
  const title = useRef<HTMLHeadingElement>(null)
  // A new key moves the focus to where it is.
  // biome-ignore lint/correctness/useExhaustiveDependencies: each key moves it once.
  useEffect(() => title.current?.focus(), [key])
  const [what, line] = USES[kind]
  return (
    <section class="issued" aria-labelledby="issued">
      <div class="section-head">
        <h2 id="issued" ref={title} tabIndex={-1}>
          Key of <Shown text={credential.name} />
        </h2>
      </div>
      <p>
        {secretShownOnce
          ? 'This key is shown only once. Copy it before you leave this page.'
          : 'The key of a public client can be shown again.'}
      </p>
      <OneTimeSecret text={key} label="Key" />
      <p>{what}</p>
      <Block text={line!} label="Use of the key" />
      <div class="buttons">
        <button type="button" onClick={close}>
          {secretShownOnce ? 'It is stored: hide the key' : 'Hide the key'}
        </button>
      </div>
    </section>
  )
}
