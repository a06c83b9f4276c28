//! [`Refusing`]: a proxy before a broker of Kafka that answers some Produce requests with errors.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex as AsyncMutex;

/// The number of the Produce request in the protocol of Kafka.
const PRODUCE: i16 = 0;

/// The errors that a proxy answers to the next Produce requests. The broker does not see these requests.
#[derive(Clone, Default)]
pub(crate) struct Refusing(Arc<Mutex<VecDeque<i16>>>);

impl Refusing {
    /// Answers the next Produce request with this error.
    pub(crate) fn refuse(&self, code: i16) {
        self.0.lock().expect("no panic").push_back(code);
    }

    /// Hands connections on to the broker.
    pub(crate) async fn serve(self, listener: TcpListener, broker: String) {
        while let Ok((client, _)) = listener.accept().await {
            let (refusing, broker) = (self.clone(), broker.clone());
            tokio::spawn(async move { refusing.hand_on(client, broker).await });
        }
    }

    async fn hand_on(&self, client: TcpStream, broker: String) -> io::Result<()> {
        let (mut from_client, to_client) = client.into_split();
        let (mut from_broker, mut to_broker) = TcpStream::connect(broker).await?.into_split();
        let to_client = Arc::new(AsyncMutex::new(to_client));
        let answers = Arc::clone(&to_client);
        tokio::spawn(async move {
            while let Ok(frame) = read_frame(&mut from_broker).await {
                write_frame(&mut *answers.lock().await, &frame).await?;
            }
            answers.lock().await.shutdown().await
        });
        loop {
            let frame = read_frame(&mut from_client).await?;
            let is_produce = i16::from_be_bytes([frame[0], frame[1]]) == PRODUCE;
            let code = is_produce.then(|| self.0.lock().expect("no panic").pop_front()).flatten();
            match code {
                Some(code) => write_frame(&mut *to_client.lock().await, &refusal(&frame, code)).await?,
                None => write_frame(&mut to_broker, &frame).await?,
            }
        }
    }
}

async fn read_frame(stream: &mut (impl AsyncReadExt + Unpin)) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; stream.read_u32().await? as usize];
    stream.read_exact(&mut frame).await?;
    Ok(frame)
}

async fn write_frame(stream: &mut (impl AsyncWriteExt + Unpin), frame: &[u8]) -> io::Result<()> {
    let length = u32::try_from(frame.len()).expect("a frame is small");
    stream.write_all(&[&length.to_be_bytes(), frame].concat()).await
}

/// Returns the answer to a Produce request (version 9 to 12) for one partition.
fn refusal(request: &[u8], code: i16) -> Vec<u8> {
    let number = |at: usize| i16::from_be_bytes([request[at], request[at + 1]]);
    assert!((9..=12).contains(&number(2)), "version {} of Produce", number(2));
    let client_id = usize::try_from(number(8)).unwrap_or(0);
    // The header ends with its tags. No transaction (1 byte), the acks (2), the time-out (4) and the number of topics (1) follow.
    let topic = 10 + client_id + 1 + 1 + 2 + 4 + 1;
    let name = usize::from(request[topic]);
    let partition = topic + name + 1;
    assert_eq!((request[topic - 1], request[partition - 1]), (2, 2), "one topic and one partition");
    let mut answer = request[4..8].to_vec();
    answer.extend([0, 2]);
    answer.extend(&request[topic..topic + name]);
    answer.push(2);
    answer.extend(&request[partition..partition + 4]);
    answer.extend(code.to_be_bytes());
    // No offset, no time and no start of the log. No errors of records, no text, and no tags of the partition and of the topic.
    answer.extend([0xff; 24]);
    answer.extend([1, 0, 0, 0]);
    // No throttling, and no tags.
    answer.extend([0; 5]);
    answer
}
