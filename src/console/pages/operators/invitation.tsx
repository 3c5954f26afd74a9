/** A new operator: the invitation, and its code, which is shown once. */
import { useState } from 'preact/hooks'
import type { Role } from '../../../value/capabilities.ts'
import { shellQuoted } from '../../../value/shell/shell-words.ts'
import type { InvitationIssued } from '../../../wire/identity/access.ts'
import { timeText } from '../../formats.ts'
import { FailureNote, Section } from '../../parts/page.tsx'
import { OneTimeSecret } from '../../parts/secret.tsx'
import { Block, Identifier, Shown } from '../../parts/shown.tsx'
import { call, type Failure, failureOf } from '../../requests.ts'
import { about, ask, environmentId } from '../../state.ts'
import { RoleChoice, ScopeChoice } from './role-form.tsx'
import { scopeOptions, scopesHere, scopeText } from './scopes.ts'

const NAME_CHARACTERS_MAX = 128

export function InvitationSection() {
  const [issued, setIssued] = useState<InvitationIssued | null>(null)
  return (
    <Section title="Invite an operator">
      {issued === null ? (
        <InvitationForm onIssued={setIssued} />
      ) : (
        <Issued issued={issued} onDone={() => setIssued(null)} />
      )}
    </Section>
  )
}

function InvitationForm({ onIssued }: { onIssued: (issued: InvitationIssued) => void }) {
  const scopes = scopesHere()
  const [operatorName, setName] = useState('')
  const [role, setRole] = useState<Role>('observer')
  const [scopeIndex, setScopeIndex] = useState(0)
  const [failure, setFailure] = useState<Failure | null>(null)
  const [isBusy, setBusy] = useState(false)
  const scope = scopes[scopeIndex]!
  const invite = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setFailure(null)
    try {
      const body = { operatorName: operatorName.trim().normalize('NFC'), role, scope }
      onIssued(await call('issueInvitation', environmentId.value, { body }))
    } catch (error) {
      setFailure(failureOf(error))
      setBusy(false)
    }
  }
  const named = operatorName.trim() === '' ? 'NAME' : shellQuoted(operatorName.trim())
  return (
    <>
      <form onSubmit={(event) => void invite(event)}>
        <label class="field">
          <span class="label">Name</span>
          <input
            name="operator-name"
            required
            maxLength={NAME_CHARACTERS_MAX}
            autocomplete="off"
            spellcheck={false}
            value={operatorName}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <RoleChoice value={role} onChange={setRole} />
        <ScopeChoice scopes={scopes} value={scopeIndex} onChange={setScopeIndex} />
        <button type="submit" class="main" disabled={isBusy}>
          Invite
        </button>
      </form>
      <p class="hint">
        You can give what you may do yourself there, and no more. svc roles shows what each role may
        do. The code works once, within 30 minutes.
      </p>
      {failure !== null && <FailureNote failure={failure} />}
      <p class="quiet">The same on the command line:</p>
      <Block
        text={`svc invite --operator-name ${named} --role ${role} ${scopeOptions(scope)}`}
        label="Command"
      />
    </>
  )
}

function Issued({ issued, onDone }: { issued: InvitationIssued; onDone: () => void }) {
  const { invitationId, operatorName, role, scope, code, expiresAtMicros } = issued
  const at = scopeText(scope)
  const revoke = (): void =>
    ask({
      title: `Revoke the invitation of ${operatorName}?`,
      effects: ['Its code does not work any more. An operator that used it already stays.'],
      command: `svc invitations revoke ${invitationId}`,
      label: 'Revoke the invitation',
      act: () => call('revokeInvitation', environmentId.value, { params: { invitationId } }),
      done: onDone,
    })
  return (
    <>
      <p>
        <Shown text={operatorName} /> is invited as {role} at <Shown text={at} />:{' '}
        <Identifier id={invitationId} />, until {timeText(expiresAtMicros)}.
      </p>
      <p>
        <strong>Give this code to the person now: it is shown once, and works once.</strong>
      </p>
      <OneTimeSecret text={code ?? 'The server sent no code.'} label="Code of the invitation" />
      <p>The new operator runs this command, which asks for the code:</p>
      <Block text={`svc login --url ${about.value!.managementOrigin}`} label="Command" />
      <p class="buttons">
        <button type="button" onClick={onDone}>
          Done, hide the code
        </button>
        <button type="button" class="danger" onClick={revoke}>
          Revoke …
        </button>
      </p>
    </>
  )
}
