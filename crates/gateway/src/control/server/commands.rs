//! What clients ask for: the reply to each message, and what the gateway has of it.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use super::Server;
use crate::control::message::{self, Datagram, Header, LONGEST, Reason, Refusal};
use crate::control::ports::IKE;
use crate::control::request::{Request, Role};
use crate::control::transforms;

/// Where memory for keys is had.
static SCOPE: OnceLock<fn(&mut dyn FnMut())> = OnceLock::new();

/// What the control thread does with keys it does in `scope`, which calls what it is given, once:
/// a program may have memory of its own for keys.
pub fn keep_keys_in(scope: fn(&mut dyn FnMut())) {
    // A second one comes in tests alone.
    let _ = SCOPE.set(scope);
}

fn within_scope<T>(work: impl FnOnce() -> T) -> Option<T> {
    let (mut work, mut result) = (Some(work), None);
    let mut once = || result = work.take().map(|work| work());
    match SCOPE.get() {
        Some(scope) => scope(&mut once),
        None => once(),
    }
    result
}

impl Server {
    /// Does what a message asks for, and replies.
    pub(super) fn answer(&mut self, number: usize, message: &[u8]) {
        if self.connections[number].is(Role::Datagrams) {
            let sent = Datagram::read(message).and_then(|datagram| self.ports.send(&datagram));
            if let Err(refusal) = sent {
                tracing::debug!("a datagram of IKE was {}", refusal.text);
            }
            return;
        }
        let Ok((header, reader)) = Header::of(message) else {
            self.connections[number].is_over = true;
            return;
        };
        let request = match message.len() {
            0..=LONGEST => within_scope(|| Request::read(header, reader)),
            _ => Some(Err(Refusal::malformed("the message is too long"))),
        };
        let done = match request {
            Some(request) => request.and_then(|request| self.act(number, header, request)),
            None => Err(Refusal::new(Reason::Failed, "there is no memory for keys")),
        };
        let reply = done.unwrap_or_else(|refusal| {
            // What is not there any more is told often when a daemon cleans up.
            if refusal.reason != Reason::NotFound {
                tracing::warn!("a request of the IKE daemon was refused: {}", refusal.text);
            }
            header.refused(&refusal)
        });
        let connection = &mut self.connections[number];
        let is_sent = connection.send(&reply);
        // Who does not read replies, or does not begin with a hello, is of no use.
        connection.is_over |= !is_sent || connection.role.is_none();
    }

    /// Does what a request says; the reply.
    fn act(&mut self, number: usize, header: Header, request: Request) -> Result<Vec<u8>, Refusal> {
        let role = self.connections[number].role;
        if let Request::Hello { role: new, flush } = request {
            if role.is_some() {
                return Err(Refusal::malformed("there was a hello already"));
            }
            self.connections[number].role = Some(new);
            if flush {
                tracing::info!("an IKE daemon begins anew");
                self.events.clear();
                self.database.retire();
                self.publish();
            }
            let ports = (IKE, self.shared.port);
            return Ok(message::welcome(
                header,
                self.life,
                ports,
                &transforms::numbers(),
            ));
        }
        if role != Some(Role::Commands) {
            return Err(Refusal::malformed(
                "requests begin with a hello for commands",
            ));
        }
        let mut reply = header.done();
        match request {
            Request::Hello { .. } => {}
            Request::GetSpi => {
                let table = self.shared.table();
                let fixed = table.configured().iter().map(|tunnel| tunnel.inbound.spi());
                let spi = self.database.allot(fixed)?;
                reply.extend_from_slice(&spi.to_be_bytes());
                return Ok(reply);
            }
            Request::QuerySa(id) => {
                let used = self.database.query_sa(id)?;
                for value in [used.bytes, used.packets, used.idle.unwrap_or(u64::MAX)] {
                    reply.extend_from_slice(&value.to_be_bytes());
                }
                return Ok(reply);
            }
            Request::QueryPolicy(policy) => {
                let idle = self.database.query_policy(policy)?.unwrap_or(u64::MAX);
                reply.extend_from_slice(&idle.to_be_bytes());
                return Ok(reply);
            }
            Request::AddSa(new) => {
                let added = within_scope(|| self.database.add_sa(*new));
                added.unwrap_or_else(|| {
                    Err(Refusal::new(Reason::Failed, "there is no memory for keys"))
                })?;
            }
            Request::UpdateSa {
                id,
                source,
                destination,
                is_in_udp,
            } => self
                .database
                .update_sa(id, source, destination, is_in_udp)?,
            Request::DeleteSa(id) => self.database.delete_sa(id)?,
            Request::FlushSas => self.database.flush_sas(),
            Request::AddPolicy { policy, own } => self.database.add_policy(policy, own)?,
            Request::DeletePolicy(policy) => self.database.delete_policy(policy)?,
            Request::FlushPolicies => self.database.flush_policies(),
        }
        self.publish();
        Ok(reply)
    }

    /// Gives the threads what there is now, and sets routes and interface for it.
    pub(super) fn publish(&mut self) {
        let children = self.database.children();
        let senders = children.tunnels.iter().filter(|(_, is_sender)| *is_sender);
        let fitted: BTreeSet<_> = senders
            .map(|(tunnel, _)| (tunnel.name().to_owned(), tunnel.inner_mtu()))
            .collect();
        self.shared.replace_children(children);
        let (wanted, left_out) = self.database.routes();
        self.routes.set(wanted);
        for prefix in left_out.iter().filter(|new| !self.left_out.contains(new)) {
            tracing::warn!(
                "{prefix} is not routed into {}, as the way to the peer would be too: add routes \
                 for what shall go there, and one to the peer beside it",
                self.shared.interface.name
            );
        }
        self.left_out = left_out;
        if fitted != self.fitted {
            self.fitted = fitted;
            if let Err(error) = self.shared.set_up_interface() {
                tracing::error!("{error}");
            }
        }
    }
}
