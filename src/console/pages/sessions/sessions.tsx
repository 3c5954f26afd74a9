/** Sessions: where the operator of the console is logged in, and what acts for it. */
import { useLoaded } from '../../loading.ts'
import { Page, Reload, Result, Section } from '../../parts/page.tsx'
import { PageLinks } from '../../parts/pages.tsx'
import { Block } from '../../parts/shown.tsx'
import { call } from '../../requests.ts'
import { about, environmentId, route } from '../../state.ts'
import { SessionTable } from './session-table.tsx'

const SESSIONS_MAX = 100

export function SessionsPage() {
  const id = environmentId.value
  const { operatorName, managesInstallation } = about.value!
  const after = route.value.parameters.get('after')
  const page = useLoaded(`${id} ${after}`, () => {
    const query = { limit: SESSIONS_MAX, ...(after !== null && { after }) }
    return call('listSessions', id, { query })
  })
  return (
    <Page title="Sessions" actions={<Reload of={[page]} />}>
      <Section title="Your sessions">
        <Result of={page}>
          {({ sessions, next }) => (
            <>
              <SessionTable sessions={sessions} owner={operatorName} reload={page.reload} />
              <PageLinks page="sessions" at={{}} after={after} next={next} />
            </>
          )}
        </Result>
        {!managesInstallation && (
          <>
            <p class="quiet">
              The page cannot end a session: it acts with a derived one, which the server lets end
              itself alone, so that no agent or job logs you out. The command line can:
            </p>
            <Block text="svc sessions revoke SESSION" label="Command" />
          </>
        )}
      </Section>
    </Page>
  )
}
